/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes a server consume requests after each k parsed requests of a connection. nightjar parses the
 * whole input of a connection first. Here the linker puts a wrapper in front of nj_h2_input()
 * (--wrap). The wrapper passes the input on in pieces of k complete requests, and calls
 * nj__conn_serve_requests() between two pieces.
 */
#pragma once

#include <stdint.h>

/* Sets k. 0: without pauses, as in nightjar. For programs with one thread: the state is global. */
void pause_after(uint32_t n_requests);
