// SPDX-License-Identifier: BSD-3-Clause
// Nothing: CMake wants a source in the target whose headers are compiled once (ImbrexTests.cmake).
