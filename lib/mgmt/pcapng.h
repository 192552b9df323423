/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks of a pcapng file (draft-ietf-opsawg-pcapng), in the byte order of this machine, with
 * times in nanoseconds of UTC.
 *
 * DPDK's rte_pcapng does not fit. In DPDK 24.11 (Debian 13) rte_pcapng_copy() takes the time stamp
 * itself, so that it would have to run on the lcore; only in 22.11 (Debian 12) it is an argument.
 * On the lcore it takes an mbuf from a mempool that the management thread shares: the mempool's
 * ring has read-modify-writes, and an lcore waits there while the other thread is interrupted in
 * the middle of an operation. That mempool would come from memory of the EAL, which may not grow
 * after privileges were given up. And its writer blocks in writev(2) until a descriptor takes all,
 * as the management thread must not.
 *
 * Pure; any thread. Each function returns the size of the block, a multiple of 4, at most
 * NJ__PCAPNG_BLOCK_MAX and the bytes of the packet, for which `out` has room.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/types.h"

#define NJ__PCAPNG_BLOCK_MAX 512u
#define NJ__PCAPNG_NAME_MAX  127u /* longer texts are cut */

size_t nj__pcapng_section(uint8_t *out, const char *application);

struct nj__pcapng_interface {
    const char *name, *description;
    uint8_t mac[6];
    uint32_t snaplen; /* 0: no limit */
};
size_t nj__pcapng_interface(uint8_t *out, const struct nj__pcapng_interface *interface);

struct nj__pcapng_packet {
    uint32_t interface; /* in the order of their blocks, from 0 */
    uint64_t utc_ns;
    const uint8_t *data;
    uint32_t n_kept, n_bytes; /* of the packet */
    bool is_sent;             /* else received */
};
size_t nj__pcapng_packet(uint8_t *out, const struct nj__pcapng_packet *packet);

struct nj__pcapng_statistics {
    uint32_t interface;
    uint64_t begun_ns, ended_ns; /* UTC */
    uint64_t n_captured, n_dropped;
};
size_t nj__pcapng_statistics(uint8_t *out, const struct nj__pcapng_statistics *statistics);
