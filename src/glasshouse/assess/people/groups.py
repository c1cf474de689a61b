"""Which people are rates given for? Everybody on a list, and those who differ from their neighbours."""

EVERYBODY, MATCHING, MODAL_ONES, NONMODAL = "all", "matching", "modal", "nonmodal"
EXPOSED = "nonmodal-unique"  # the most exposed: unlike their neighbours, and alone with what people are known by
EXPOSED_EXACTLY = "nonmodal-unique-exact"  # alone with it exactly (single years), perhaps not in bins: more of them
GROUPS = (EVERYBODY, MATCHING, MODAL_ONES, NONMODAL, EXPOSED, EXPOSED_EXACTLY)
