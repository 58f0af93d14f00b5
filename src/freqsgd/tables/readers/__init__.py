"""From files to blocks of rows: text and Parquet behind one reader."""
