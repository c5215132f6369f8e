// SPDX-License-Identifier: BSD-3-Clause
#include "sched/policy/shares.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>

#include "base/topology.hpp"

namespace imbrex::sched {

namespace {

using Ints = std::vector<int>;
using IntLists = std::vector<Ints>;

// The ranks with one mask.
struct Team {
  cpu_set_t mask;
  Ints ranks;
  int processors = 0;  // that it has got
};

// The processors that are in the masks of the same teams.
struct Cell {
  std::vector<std::size_t> teams;
  Ints processors;
  Ints taken;  // number of processors of each of `teams`
};

std::vector<Team> teams_of(const std::vector<cpu_set_t>& masks) {
  std::vector<Team> teams;
  for (std::size_t rank = 0; rank < masks.size(); ++rank) {
    auto team = std::ranges::find_if(
        teams, [&](const Team& other) { return CPU_EQUAL(&other.mask, &masks[rank]) != 0; });
    if (team == teams.end()) team = teams.insert(team, {.mask = masks[rank], .ranks = {}});
    team->ranks.push_back(static_cast<int>(rank));
  }
  return teams;
}

std::vector<Cell> cells_of(const std::vector<Team>& teams) {
  std::map<int, std::vector<std::size_t>> users;
  for (std::size_t team = 0; team < teams.size(); ++team) {
    for (const int processor : base::processors_in(teams[team].mask)) {
      users[processor].push_back(team);
    }
  }
  std::map<std::vector<std::size_t>, Cell> found;
  for (const auto& [processor, its_users] : users) found[its_users].processors.push_back(processor);
  std::vector<Cell> cells;
  for (auto& [its_teams, cell] : found) {
    cell.teams = its_teams;
    cell.taken.assign(its_teams.size(), 0);
    cells.push_back(std::move(cell));
  }
  return cells;
}

// Whether the ranks of `first` have fewer processors each than those of `second`, which has got
// `less` fewer.
bool has_fewer(const Team& first, const Team& second, const int less) {
  return first.processors * std::ssize(second.ranks) <
         (second.processors - less) * std::ssize(first.ranks);
}

// A processor of `cell` goes from the team at `from`, if there is one, to that at `to`.
void move(Cell& cell, std::vector<Team>& teams, const std::optional<std::size_t> from,
          const std::size_t to) {
  if (from) {
    --cell.taken[*from];
    --teams[cell.teams[*from]].processors;
  }
  ++cell.taken[to];
  ++teams[cell.teams[to]].processors;
}

// Gives each processor to the team that has the fewest for each rank.
void give_all(std::vector<Cell>& cells, std::vector<Team>& teams) {
  std::ranges::stable_sort(cells, {}, [](const Cell& cell) { return cell.teams.size(); });
  for (Cell& cell : cells) {
    for (std::size_t count = 0; count < cell.processors.size(); ++count) {
      std::size_t least = 0;
      for (std::size_t at = 1; at < cell.teams.size(); ++at) {
        if (has_fewer(teams[cell.teams[at]], teams[cell.teams[least]], 0)) least = at;
      }
      move(cell, teams, std::nullopt, least);
    }
  }
}

// A step by which a team gets a processor of a cell from another team.
struct Step {
  std::size_t cell;
  std::size_t from;  // positions in the cell's teams
  std::size_t to;
};

// Gives `poor` a processor more if that leaves each other team with more than `poor` had: directly,
// or over teams that give one and get one. Returns false if there is no such way.
bool give_one(const std::size_t poor, std::vector<Cell>& cells, std::vector<Team>& teams) {
  std::vector<std::optional<Step>> steps(teams.size());  // by which a team gives
  std::vector<std::size_t> reached{poor};
  for (std::size_t next = 0; next < reached.size(); ++next) {
    for (std::size_t index = 0; index < cells.size(); ++index) {
      const Cell& cell = cells[index];
      const auto to = std::ranges::find(cell.teams, reached[next]);
      if (to == cell.teams.end()) continue;
      for (std::size_t from = 0; from < cell.teams.size(); ++from) {
        const std::size_t giver = cell.teams[from];
        if (cell.taken[from] == 0 || giver == poor || steps[giver]) continue;
        steps[giver] = {index, from, static_cast<std::size_t>(to - cell.teams.begin())};
        reached.push_back(giver);
        if (!has_fewer(teams[poor], teams[giver], 1)) continue;
        for (std::size_t team = giver; team != poor;) {
          const Step step = *steps[team];
          move(cells[step.cell], teams, step.from, step.to);
          team = cells[step.cell].teams[step.to];
        }
        return true;
      }
    }
  }
  return false;
}

// The processors of each team, neighbours of one cell together.
IntLists lists_of(std::vector<Cell>& cells, const std::size_t teams, const SortProcessors& sort) {
  IntLists lists(teams);
  for (Cell& cell : cells) {
    if (cell.teams.size() > 1) sort(cell.processors);
    auto next = cell.processors.begin();
    for (std::size_t at = 0; at < cell.teams.size(); ++at) {
      Ints& list = lists[cell.teams[at]];
      list.insert(list.end(), next, next + cell.taken[at]);
      next += cell.taken[at];
    }
  }
  return lists;
}

// Divides the processors of a team among its ranks. Without enough of them, ranks share one: those
// of the mask that have the fewest ranks, if the team has none.
void divide(const Team& team, const Ints& list, IntLists& shares, std::map<int, int>& load) {
  const auto count = std::ssize(team.ranks);
  const auto all = std::ssize(list);
  for (std::ptrdiff_t index = 0; index < count; ++index) {
    Ints& share = shares[static_cast<std::size_t>(team.ranks[static_cast<std::size_t>(index)])];
    if (all >= count) {
      share.assign(list.begin() + all * index / count, list.begin() + all * (index + 1) / count);
    } else if (all > 0) {
      share = {list[static_cast<std::size_t>(index % all)]};
    } else {
      share = {std::ranges::min(base::processors_in(team.mask), {}, [&](const int processor) {
        return load[processor];
      })};
    }
    for (const int processor : share) ++load[processor];
  }
}

}  // namespace

IntLists divide_processors(const std::vector<cpu_set_t>& masks, const SortProcessors& sort) {
  std::vector<Team> teams = teams_of(masks);
  std::vector<Cell> cells = cells_of(teams);
  give_all(cells, teams);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t team = 0; team < teams.size(); ++team) moved |= give_one(team, cells, teams);
  }
  IntLists lists = lists_of(cells, teams.size(), sort);
  IntLists shares(masks.size());
  std::map<int, int> load;  // number of ranks of each processor
  for (const bool poor : {false, true}) {
    for (std::size_t team = 0; team < teams.size(); ++team) {
      if (lists[team].empty() != poor) continue;
      sort(lists[team]);
      divide(teams[team], lists[team], shares, load);
    }
  }
  return shares;
}

}  // namespace imbrex::sched
