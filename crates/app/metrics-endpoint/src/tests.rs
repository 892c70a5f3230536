mod encoding;
