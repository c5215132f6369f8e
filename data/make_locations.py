#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Cuts airports_us.csv from the airports.csv of the Python package airportsdata.

Usage: make_locations.py airports.csv airports_us.csv

What is kept, and why, stands in README.md beside this file. The output depends on the input alone:
the same package version gives the same bytes.
"""
import csv
import sys

FOOT_M = 0.3048
# The contiguous United States, a little generous; states outside are named in EXCLUDED.
LATITUDE, LONGITUDE = (24.0, 49.5), (-125.0, -66.5)
EXCLUDED = {"Alaska", "Hawaii"}
# Furnace Creek (-64 m) and Leadville (3028 m) are the lowest and highest airports there.
ELEVATION_M = (-70.0, 3100.0)
# One in KEEP_ONE_IN of the fields without a four-letter ICAO code, to keep the file small.
KEEP_ONE_IN = 4


def read_candidates(path):
    with open(path, encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            if row["country"] != "US" or row["subd"] in EXCLUDED:
                continue
            lat, lon, feet = float(row["lat"]), float(row["lon"]), float(row["elevation"])
            if not (LATITUDE[0] < lat < LATITUDE[1] and LONGITUDE[0] < lon < LONGITUDE[1]):
                continue
            metres = feet * FOOT_M
            if feet == 0.0 or not ELEVATION_M[0] <= metres <= ELEVATION_M[1]:
                continue  # zero stands for "unknown" in the source
            name = " ".join(row["name"].replace('"', "").split())
            yield {"id": row["icao"], "name": name, "lat": lat, "lon": lon, "elevation_m": metres}


def has_icao_code(site):
    return len(site["id"]) == 4 and site["id"].isalpha() and site["id"].startswith("K")


def thin(sites):
    """All sites with an ICAO code, and every KEEP_ONE_IN-th of the others, by identifier."""
    others = [site for site in sites if not has_icao_code(site)]
    kept = [site for site in sites if has_icao_code(site)] + others[::KEEP_ONE_IN]
    return sorted(kept, key=lambda site: site["id"])


def drop_duplicates(sites):
    """The first of those whose positions are equal to four decimals (about ten metres)."""
    seen = set()
    for site in sites:
        position = (round(site["lat"], 4), round(site["lon"], 4))
        if position not in seen:
            seen.add(position)
            yield site


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sites = sorted(read_candidates(sys.argv[1]), key=lambda site: site["id"])
    sites = list(drop_duplicates(thin(sites)))
    with open(sys.argv[2], "w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["id", "name", "lat", "lon", "elevation_m"])
        for site in sites:
            writer.writerow([site["id"], site["name"], f"{site['lat']:.5f}", f"{site['lon']:.5f}",
                             f"{site['elevation_m']:.1f}"])
    print(f"{len(sites)} sites", file=sys.stderr)


main()
