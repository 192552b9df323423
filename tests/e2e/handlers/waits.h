/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers that wait for another thread, which answers when the lcore has gone to sleep. */
#pragma once

#include <nightjar/nightjar.h>

/* Starts the thread. Before the server starts. */
void waits_start(void);

nj_handler_fn await_event, await_fd, await_nothing, call_on_worker;
