"""What we talk about: schemas, records, releases, geography, and the words for them."""
