/* SPDX-License-Identifier: BSD-3-Clause */
/* The private area of each mbuf of TCP's pool: shared info for rte_pktmbuf_attach_extbuf(). */
#pragma once

#include <rte_mbuf_core.h>

struct nj_tcp_mbuf_priv {
    struct rte_mbuf_ext_shared_info shinfo; /* of the external buffer the mbuf refers to */
};

/* Private size to make the pool with: a multiple of 8, as rte_pktmbuf_pool_create() asks. */
#define NJ_MBUF_PRIV_BYTES RTE_ALIGN(sizeof(struct nj_tcp_mbuf_priv), 8)
