/* SPDX-License-Identifier: BSD-3-Clause */
/* Kinds and lengths of the supported TCP options, for parse and emit. */
#pragma once

enum nj__tcp_opt_kind {
    NJ__OPT_EOL = 0,
    NJ__OPT_NOP = 1,
    NJ__OPT_MSS = 2,
    NJ__OPT_WSCALE = 3,
    NJ__OPT_SACK_PERMITTED = 4,
    NJ__OPT_SACK = 5,
    NJ__OPT_TS = 8,
};

/* Bytes including kind and length. */
#define NJ__OPT_MSS_BYTES            4
#define NJ__OPT_WSCALE_BYTES         3
#define NJ__OPT_SACK_PERMITTED_BYTES 2
#define NJ__OPT_SACK_BLOCK_BYTES     8 /* plus 2 for kind and length */
#define NJ__OPT_TS_BYTES             10
