mod faulty;
mod plain;
mod trouble;
