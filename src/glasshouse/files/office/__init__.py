"""How are tables read as offices write them? Their words, their places, their marks and digits."""
