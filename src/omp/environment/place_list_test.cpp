// SPDX-License-Identifier: BSD-3-Clause
#include "omp/environment/place_list.hpp"

#include <gtest/gtest.h>

#include "omp/environment/seats.hpp"

namespace imbrex::omp {

namespace {

constexpr int processors_max = 64;

std::vector<Place> listed(const std::string_view text) {
  Complaints complaints;
  const auto parsed = parse_places(text, processors_max, complaints);
  EXPECT_TRUE(complaints.empty());
  return parsed ? parsed->list : std::vector<Place>{};
}

// The complaint about a text that is refused; "none" if there is none.
std::string complaint_of(const std::string_view text) {
  Complaints complaints;
  EXPECT_FALSE(parse_places(text, processors_max, complaints)) << text;
  return complaints.empty() ? "none" : complaints.front();
}

using Places = std::vector<Place>;

TEST(PlaceList, takes_places_with_intervals) {
  EXPECT_EQ(listed("{0,1},{2,3}"), (Places{{0, 1}, {2, 3}}));
  EXPECT_EQ(listed("{0:2}:3:4"), (Places{{0, 1}, {4, 5}, {8, 9}}));
  EXPECT_EQ(listed("{6:3:-2}"), (Places{{2, 4, 6}}));
  EXPECT_EQ(listed("{4}:3:-2"), (Places{{4}, {2}, {0}}));
  EXPECT_EQ(listed("5:2, 1"), (Places{{5}, {6}, {1}}));
  EXPECT_EQ(listed(" { 1 , 0 } : 2 : 2 "), (Places{{0, 1}, {2, 3}}));
}

TEST(PlaceList, a_stride_of_zero_names_one_processor_however_often) {
  EXPECT_EQ(listed("{3:99999999999:0}"), (Places{{3}}));
  EXPECT_EQ(listed("{3}:2:0"), (Places{{3}, {3}}));
}

TEST(PlaceList, refuses_a_stride_that_leaves_every_machine) {
  for (const char* const text : {"{1:3:9223372036854775807}", "{1}:3:9223372036854775807",
                                 "{1:3:-9223372036854775808}", "{1:3:99999999999999999999}"}) {
    EXPECT_EQ(complaint_of(text), "none") << text;
  }
}

TEST(PlaceList, exclusion_takes_processors_and_places_out) {
  EXPECT_EQ(listed("{!2,0:4}"), (Places{{0, 1, 3}}));
  EXPECT_EQ(listed("{0}:4,!{2}"), (Places{{0}, {1}, {3}}));
  EXPECT_EQ(complaint_of("{0},!{1}"), "Trying to remove a non-existing place from list of places");
  EXPECT_EQ(complaint_of("{0,!1}"), "Logical CPU 1 to be removed is not in the set");
  EXPECT_EQ(complaint_of("{0},!{0}"), "All places have been removed");
}

TEST(PlaceList, refuses_what_is_malformed_or_beyond_the_machine) {
  for (const char* const text : {"", " ", "{", "{}", "{0", "0}", "{0},", "{0}x", "{0:0}", "{0:}",
                                 "{0::1}", "{0}:2:", "!", "{-1}", "{!0:2,0,1}", "cores(", "cores()",
                                 "cores(2", "cores(2)x", "{0}:70000", "rooms"}) {
    EXPECT_EQ(complaint_of(text), "none") << text;
  }
  EXPECT_EQ(complaint_of("{64}"), "Logical CPU number 64 out of range");
  EXPECT_EQ(complaint_of("{62:3}"), "Logical CPU number 64 out of range");
  EXPECT_EQ(complaint_of("{1:3:-1}"), "Logical CPU number 0+-1 out of range");
  EXPECT_EQ(complaint_of("{60}:2:8"), "Logical CPU number 60+8 out of range");
}

TEST(PlaceList, takes_names_in_any_case_with_a_number) {
  Complaints complaints;
  const auto cores = parse_places("Cores", processors_max, complaints);
  ASSERT_TRUE(cores);
  EXPECT_EQ(cores->unit, Unit::cores);
  EXPECT_EQ(cores->most, SIZE_MAX);
  const auto caches = parse_places(" ll_caches ( 3 ) ", processors_max, complaints);
  ASSERT_TRUE(caches);
  EXPECT_EQ(caches->unit, Unit::ll_caches);
  EXPECT_EQ(caches->most, 3U);
}

TEST(PlaceList, keeps_the_processors_that_are_allowed) {
  Complaints complaints;
  EXPECT_EQ(usable({{0, 1}, {2}, {3, 4}}, {1, 3}, complaints), (Places{{1}, {3}}));
  ASSERT_EQ(complaints.size(), 1U);
  EXPECT_EQ(complaints[0], "Number of places reduced from 3 to 2 because some places didn't "
                           "contain any usable logical CPUs");
  EXPECT_TRUE(usable({{7}}, {1, 3}, complaints).empty());
  EXPECT_EQ(complaints.back(), "None of the places contain usable logical CPUs");
}

TEST(PlaceList, takes_cpu_affinity_with_ranges_and_bases) {
  EXPECT_EQ(parse_cpu_affinity("0 3 1-2 4-15:6"), (Places{{0}, {3}, {1}, {2}, {4}, {10}}));
  EXPECT_EQ(parse_cpu_affinity("0x2,010"), (Places{{2}, {8}}));
  for (const char* const text : {"", "x", "2-1", "0-3:0", "0-", "-1", "0,", "70000"}) {
    EXPECT_FALSE(parse_cpu_affinity(text)) << text;
  }
}

TEST(PlaceList, takes_bindings_by_level) {
  EXPECT_EQ(parse_binding("true"), std::vector<int>{1});
  EXPECT_EQ(parse_binding(" FALSE "), std::vector<int>{0});
  EXPECT_EQ(parse_binding("spread, close,primary,master"), (std::vector<int>{4, 3, 2, 2}));
  for (const char* const text : {"", "x", "spread,true", "true,close", "close,", "close spread"}) {
    EXPECT_TRUE(parse_binding(text).empty()) << text;
  }
}

TEST(PlaceList, prints_runs) {
  EXPECT_EQ(text_of({{0, 1, 2}, {5}, {7, 8, 10}}), "{0:3},{5},{7:2,10}");
  EXPECT_EQ(ranges_of({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
}

std::vector<int> places_in(const std::vector<Seat>& seats) {
  std::vector<int> places;
  for (const Seat& seat : seats) places.push_back(seat.place);
  return places;
}

TEST(Seats, close_follows_the_creator_and_wraps_around) {
  const Seat creator{.place = 6, .first = 4, .count = 4};
  EXPECT_EQ(places_in(seats_for(3, Binding::close, creator)), (std::vector<int>{6, 7, 4}));
  // Six on four places: one each, and the two that are left from the creator's on.
  EXPECT_EQ(places_in(seats_for(6, Binding::any, creator)), (std::vector<int>{6, 7, 4, 5, 6, 7}));
  EXPECT_EQ(places_in(seats_for(9, Binding::close, creator)),
            (std::vector<int>{6, 6, 7, 7, 4, 4, 5, 5, 6}));
  for (const Seat& seat : seats_for(6, Binding::close, creator)) {
    EXPECT_EQ(seat.first, 4);
    EXPECT_EQ(seat.count, 4);
  }
}

TEST(Seats, primary_stays_where_the_creator_is) {
  EXPECT_EQ(places_in(seats_for(3, Binding::primary, {.place = 2, .first = 0, .count = 4})),
            (std::vector<int>{2, 2, 2}));
}

TEST(Seats, spread_divides_the_partition) {
  // Eight places for three threads: 3 + 3 + 2. The creator keeps its place in its part.
  const auto seats = seats_for(3, Binding::spread, {.place = 4, .first = 0, .count = 8});
  EXPECT_EQ(places_in(seats), (std::vector<int>{4, 6, 0}));
  EXPECT_EQ(seats[0].first, 3);
  EXPECT_EQ(seats[0].count, 3);
  EXPECT_EQ(seats[1].first, 6);
  EXPECT_EQ(seats[1].count, 2);
  EXPECT_EQ(seats[2].first, 0);
  EXPECT_EQ(seats[2].count, 3);
}

TEST(Seats, spread_of_more_threads_than_places_gives_each_a_place_of_its_own) {
  const auto seats = seats_for(5, Binding::spread, {.place = 1, .first = 0, .count = 2});
  EXPECT_EQ(places_in(seats), (std::vector<int>{1, 1, 0, 0, 1}));
  for (const Seat& seat : seats) {
    EXPECT_EQ(seat.first, seat.place);
    EXPECT_EQ(seat.count, 1);
  }
}

TEST(PlaceList, words_of_kmp_affinity_end_at_commas_outside_of_brackets) {
  const auto words = [](const std::string_view text) { return words_of_affinity(text); };
  EXPECT_EQ(words("Granularity=fine, compact,1"),
            (std::vector<std::string>{"granularity=fine", "compact", "1"}));
  EXPECT_EQ(words("explicit,proclist=[0,{1,2}],verbose"),
            (std::vector<std::string>{"explicit", "proclist=[0,{1,2}]", "verbose"}));
  EXPECT_EQ(words(""), std::vector<std::string>{""});
  EXPECT_EQ(words("]},a"), (std::vector<std::string>{"]}", "a"}));
  EXPECT_EQ(words("[0,1"), std::vector<std::string>{"[0,1"});
}

}  // namespace

}  // namespace imbrex::omp
