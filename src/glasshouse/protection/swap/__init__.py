"""Which households trade places, and who lives where afterwards? Two rules, and what they have in common.

`households`  what makes households alike, who is at risk, and what comes out: of both rules.
`by_rates`    the rule of 2010 in its plain form (paper 000): two chances, for households at risk and for others; chosen
              households are paired with each other, at random within an area, and leave their surroundings. It makes
              the published file of a synthetic county, and leave-one-out does it again without a person (`persons`).
`by_tiers`    the rule of paper 004: a share that is reached, weights by how exposed a household is, and partners from
              the nearest. It is `protect swap`.
`quarters`    who is never swapped, and gets other values instead.
"""
