/* SPDX-License-Identifier: BSD-3-Clause
 * The model of a phaser on which one task runs ahead of the others. */
#define AHEAD
#include "phaser.pml"
