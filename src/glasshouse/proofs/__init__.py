"""How can strangers check it? Facts about all records that fit, as certificates, and the program that checks them."""
