"""The PostgreSQL store: one connection that writes and holds the lock, a few that read.

`store` is the contract's face. `session` opens connections and takes the store for one process, `recovery` reads
back what a starting server has, `tables` and `migrations` are the schema. EAs lie in leaves by expiry
(`partitions`); `collection` deletes dead CFs, EFs and CAs. What is written is in `writing/`, what is asked in `searching/`.
"""
