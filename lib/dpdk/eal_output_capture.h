/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The output of DPDK. At the start and end it is captured, so that the user sees one line with the
 * cause of a failure. With NJ_EAL_VERBOSE in the environment the whole output is printed when the
 * capture ends. At other times DPDK's log goes to a function of the server: DPDK itself would write
 * it to stdout or stderr and to syslog, from lcores too, and wait for their readers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* A line of DPDK without its newline. `is_problem`: of level WARNING or above. `is_captured`: of a
 * capture that has ended (NJ_EAL_VERBOSE). Any thread, lcores too unless `is_captured`: it must not
 * block. */
typedef void nj_eal_log_line_fn(const char *line, bool is_problem, bool is_captured);
/* From here on DPDK's log goes to `fn`, until the process ends. Without effect if the program has
 * given DPDK a stream of its own (rte_openlog_stream()). Main thread, before nj_eal_init(). */
void nj_eal_log_redirect(nj_eal_log_line_fn *fn);

/* Redirects stdout and stderr of the process to a memory file until nj_eal_log_end_get_cause().
 * False: no memory file, and nothing is captured. Main thread, while no other thread prints. */
bool nj_eal_log_capture_stdio(void);
/* Ends the capture, if there is one. `cause` (may be NULL) receives the line that most likely names
 * the cause of a failure, with a known remedy. Without such a line `cause` is unchanged. */
void nj_eal_log_end_get_cause(char *cause, size_t cause_bytes);

/* The descriptor of the original stderr, also during a capture. Any thread; signal handlers too. */
int nj_eal_log_original_stderr_fd(void);

/* The captured line that reports that vfio could not map memory for devices (DMA); NULL: none.
 * DPDK continues after this error, but the device cannot access that memory. Main thread. */
const char *nj_eal_log_dma_error(void);
