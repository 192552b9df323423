/* SPDX-License-Identifier: BSD-3-Clause */
/* The port of DPDK that a load comes from: the EAL, its lcores, and a shard for each of them. Main
 * thread, unless stated otherwise. */
#pragma once

#include "options.h"
#include "shard/shard.h"

/* Checks the options of the link, and makes the EAL's arguments of argv[0..argc-1], the preset and
 * the number of threads. Starts nothing. Returns 0, or -1 with the reason in `why`. */
int load_dpdk_check(const struct load_options *o, int argc, char **argv, char *why, size_t n);

/* Starts the EAL, and opens the port and the shards. *n: their number. Returns 0, or -1 with the
 * reason in `why`. */
int load_dpdk_up(const struct load_options *o, uint32_t *n, char *why, size_t why_bytes);
/* After load_dpdk_check(), whatever failed. The crowds have ended. */
void load_dpdk_down(void);

struct nj_shard *load_dpdk_shard(uint32_t i);
const char *load_dpdk_driver(void);
/* Any thread. */
nj_ns load_dpdk_now(void);

/* Runs loop(i) on the lcore of each shard. `is_main`: that of this thread. Returns when all have
 * ended. */
void load_dpdk_run(int (*loop)(uint32_t i, bool is_main));
