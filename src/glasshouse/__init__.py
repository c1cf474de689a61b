"""Glasshouse shows a statistical office what its published tables give away.

Records are cells of a histogram; a release says how groups of cells add up. The house, from the ground up
(a module imports only from those above it):

    errors      what can go wrong           InputError, GlasshouseBug
    schema      what a record is            Attribute, Recode, Predicate, Schema
    geography   where a record lives        Geography
    records     what we hold                Records, Histogram, Interval
    release     what was published          Table, Counts, Release
    tabulate    how records become tables   compile_tables, tabulate
    identities  do the numbers agree        find_identities, Checker, Finding
    wording     how a description of records is said   Wording: sentence, said
    occupancy   what two agencies say of the same households   Statement, Model, Key, Occupancy
    scenario    which tables an office publishes   load, Scenario; scenario_parser: its entries; scenarios/ is data
    files       real files in and out       records, tables, summary (archives)
    population  a synthetic county          County: places, people, homes, lists, subsidised housing; presets are data
    program     which histograms fit        compile_tables, places_alone, one, farthest, ranges, settled, conflict
    mechanism   noise and its price         DiscreteGaussian, sum_of, epsilon, Ledger, allocation
    attack      what can be learnt          reconstruct, near, vary: tables to records; verify, reasons,
                                            withholding, absence: tables to what must be true; detect (statements,
                                            kinds, bundles), likely, unlike, closest: two agencies' numbers;
                                            reidentify, counterfactual: records to people; infer: noisy counts to
                                            beliefs
    protect     what could be done          swap, nearby; persons: who lives where after it, and without one of them;
                                            relocate: the front of privacy and utility; topdown: noise at every level
                                            (measurements, leastsquares, controlled); noise, perturb: of tables;
                                            properties: of what properties publish
    assess      how bad, how good           rates, variability, likeness, baselines, reidentification, paper_tables,
                                            claims, priors, leaks, occupancy, frontier, utility, comparison,
                                            microdata: the office's own rules
    report      say it                      description: what a report says; page, sheets, drawing: how it is shown;
                                            publish: what everybody may see; audit_*: the audit's sections; charts,
                                            tables, variability, reidentification, claims, leaks, occupancy, frontier,
                                            comparison: those of single commands
    run         do it at scale              study, ledger, executors; attacking; tabulating, checking, rebuilding,
                                            varying, verifying, detecting, linking, reidentifying, leaving, trading,
                                            swapping, hierarchical, noising, perturbing, usefulness, comparing;
                                            auditing: all of it (audit_config, audit_files, audit_findings); cli

Heavy modules are imported when they are used: `from glasshouse.scenario import load`.
"""
