"""Glasshouse shows a statistical office what its published tables give away.

Records are cells of a histogram; a release says how groups of cells add up. The house, from the ground up
(a module imports only from those above it):

    errors      what can go wrong           InputError, GlasshouseBug
    model       what we talk about          schema, geography, records, release, tabulate, identities, wording
    scenarios   which tables an office publishes   load, parse, occupancy; data/ holds the built-in ones
    files       real files in and out       records, tables, summary (archives)
    population  a synthetic county          places, people, homes, lists, subsidised housing; presets are data
    program     which histograms fit        compile_tables, places_alone, one, farthest, ranges, settled, conflict
    mechanism   noise and its price         DiscreteGaussian, sum_of, epsilon, Ledger, allocation
    attack      what can be learnt          contradictions; reconstruct, vary: tables to records; claims/: what must be
                                            true; occupancy/: two agencies' numbers; people/: records to people; infer/:
                                            noisy counts to beliefs
    protection  what could be done          swap/, topdown/, relocation/; noise, perturb: of tables; properties
    assess      how bad, how good           rates, variability, baselines, reidentification, claims, occupancy,
                                            frontier, utility, usefulness, comparison, microdata: the office's own rules
    report      say it                      description: what a report says; sections/, text/: in which words;
                                            render/, theme: how it is shown; publish: what everybody may see
    engine      do it at scale              study, workers, dask, ledger, folder, manifest, progress
    commands    one question, one module    work/: what is done to one unit; words/: what is said at the end
    cli         the terminal

Heavy modules are imported when they are used: `from glasshouse.scenarios.load import load`.
"""
