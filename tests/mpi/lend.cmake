# SPDX-License-Identifier: BSD-3-Clause
# Ranks of a node that lend processors: imbrex_mpi_lend(<name> <case> <end>
# [ENVIRONMENT A=b...] [EXPECT <option of expect.sh>...])
imbrex_mpi_program(imbrex_mpi_lend_cases lend_cases.cpp)
function(imbrex_mpi_lend name case end)
  cmake_parse_arguments(PARSE_ARGV 3 lend "" "" "ENVIRONMENT;EXPECT")
  imbrex_mpi_entry(lend.${name}
    sh ${PROJECT_SOURCE_DIR}/tests/life/expect.sh ${end} -s 50 ${lend_EXPECT}
    -n "no processors are lent" -n "failed:" --
    ${imbrex_mpirun} 2 $<TARGET_FILE:imbrex_mpi_lend_cases> ${case}
    WORKERS 1 ENVIRONMENT IMBREX_LEND=1 ${lend_ENVIRONMENT})
endfunction()
foreach(case lends lends_for_a_pool ends_early)
  imbrex_mpi_lend(${case} ${case} 0 EXPECT -e borrowed)
endforeach()
imbrex_mpi_lend(takes_turns takes_turns 0)
foreach(case owner_is_killed borrower_is_killed borrower_aborts)
  imbrex_mpi_lend(${case} ${case} failure EXPECT -e borrowed)
endforeach()
foreach(places worker tree)
  imbrex_mpi_lend(with_places_${places} lends 0 ENVIRONMENT IMBREX_PLACES=${places}
    EXPECT -e borrowed)
endforeach()
