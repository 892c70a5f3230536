mod behind;
mod faulty;
mod plain;
mod trouble;
