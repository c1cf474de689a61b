"""How much is too much? What a file may ask of us at most: beyond, it is refused, and the limit is said.

Each is far above what offices publish, and low enough that a file at the limit is read in seconds, in a gigabyte.
"""

from __future__ import annotations

# A TOML file
TOML_BYTES = 1 << 20
TOML_DEPTH = 24  # entries within entries
TEXT_LENGTH = 20_000  # letters of one text
NAME_LENGTH = 200  # letters of a name, a label or a pattern of names
WHOLE_NUMBER = 2**63 - 1  # as TOML says

# A scenario
ATTRIBUTES = 64
LEVELS = 10_000  # of one attribute
RECORDS = 2**62  # different records: the product of the numbers of levels
GEOGRAPHIC_LEVELS = 32
CODE_LENGTH = 64  # letters of the code of a place
WAYS = 12  # recodes that one table crosses
LINES = 50_000  # of all tables of a scenario, and as many of its catalogue
LOOKUPS = 12_000_000  # combinations of levels that tables tell apart, and lines that count each, of one level
SPELLINGS = 200_000  # names of variables, in all spellings
PIECES = 100_000  # descriptions that structural zeros cut the records into

# How numbers are printed
MARKERS = 100
KEY_TABLE_COUNTS = 100_000  # rows of a p-table
FILES = 10_000  # of a folder of tables
DESCRIPTIONS = 200_000  # different combinations of categories in a table of an office
PLACES_LISTED = 2_000_000  # of a list of places that belongs to a scenario

# A plan of comparisons
SETTINGS = 1_000

# A file of columns
COLUMNS = 100_000
LINE_BYTES = 8 << 20
COMMENT_LINES = 1_000
GZIP_RATIO = 500  # text of counts compresses 10 to 50 times; the worst gzip can do is about 1,030
GZIP_RATIO_FROM = 64 << 20
TEXT_FILE_BYTES = 64 << 20  # a codebook, a catalogue: read as a whole
GEOMETRY_BYTES = 1 << 30

# Contributions to sums: records, or numbers with their largest contributions
CONTRIBUTIONS = 5_000_000

# A table of another format (files/formats)
XML_DEPTH = 64  # elements within each other
XML_TOKEN_BYTES = 8 << 20  # of one tag or text
JSON_BYTES = 64 << 20
JSON_ENTRIES = 1_000_000  # lists and objects in a file
JSON_TEXTS = 4_000_000  # texts in a file, names included
JSON_VALUES = 10_000_000  # entries of lists and objects
DIMENSIONS = 100  # of one table
CATEGORIES = 2_000_000  # of all dimensions of a table, places too
CROSSINGS = 100_000_000  # numbers of one table that tells its size beforehand
DATASETS = 1_000  # tables in one file
SHEETS = 200  # of a workbook
SHEET_CELLS = 1_000_000  # cells of a sheet with something in them
SHEET_MERGED = 100_000  # ranges of merged cells
SHEET_LETTERS = 64 << 20  # in all cells of a sheet; a text that cells share counts in each
CELL_LETTERS = 32_767  # of one cell, as Excel has it
FORMAT_LETTERS = 255  # of the format of a number, as Excel has it

# A table that is described
DESCRIBED_NUMBERS = 50_000_000  # of one file
DESCRIBED_CELLS = 20_000_000  # that one check of totals looks at

# An archive
MEMBERS = 1_000
TOTAL_BYTES = 64 << 30
SMALL_BYTES, RATIO = 1 << 20, 250  # tables of zeros pack well (to about 1/100), a bomb to the limit of deflate (1/1032)

# Addresses that libraries set aside, whether they use them or not: with fewer, they end the process
ADDRESSES = 4 << 30
DRAWING_ADDRESSES = 72 << 30  # to draw: a cage of 64 GiB, and the rest

# A complaint
CHOICES = 60  # known names that it lists
COMPLAINT_LENGTH = 2_000  # letters of a line
COMPLAINTS = 20  # of one file
