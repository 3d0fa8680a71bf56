"""Who may do what. The decisions are pure; files, keys and certificates lie apart.

An `identity` comes out of a certificate. `grants` is the one document that says what each identity may do: numbered and
signed, and the highest number wins everywhere. `rights` asks it: `allow` is the only judge, of single uTuples,
templates and whole batches, and `within` knows when one condition lies inside another. `shares` limits what one identity may
use; `audit` is the chain of what was decided. `authority` makes certificates and signs, `credentials` are what it issued, `proofs` what is shown at a door.
"""
