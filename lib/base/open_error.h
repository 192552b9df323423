/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a file of the configuration cannot be opened, in words for an operator. */
#pragma once

/* The reason, after open(2) of `path` for reading failed with `error` (an errno). For EACCES it
 * says whether the mode of the file, Landlock or another security module is the cause: the kernel
 * does not tell them apart, but Landlock has no effect on faccessat(2). Any thread that may make
 * system calls; uses strerror().
 */
const char *nj_open_error(const char *path, int error);
/* The same after open(2) for writing with O_CREAT. */
const char *nj_open_error_to_write(const char *path, int error);
