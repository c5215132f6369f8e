// SPDX-License-Identifier: BSD-3-Clause
// Calls a function of libgomp that ours does not have.
int acc_get_num_devices(int device_type);
int main(void) { return acc_get_num_devices(0); }
