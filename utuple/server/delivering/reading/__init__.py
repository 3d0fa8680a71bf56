"""What is read from the store for readers: `ready` has the searches that wait for their turn, `together` makes one of many for the
EFs of a stream, `searching` runs them beside the writer and gives the cursors what was found."""
