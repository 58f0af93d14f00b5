"""From blocks of rows and frames to ids: by a dictionary of tokens or by hashing."""
