/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets of DPDK's net_af_packet driver: their send buffers, and their descriptors. */
#pragma once

#include <stdint.h>

/*
 * Enlarges the send buffers of the driver's sockets to all frames of a ring, up to 4096 each. A
 * frame occupies the buffer until the receiver's CPU takes it. When the buffer (208 KiB by default)
 * is full, frames stay in the ring until something else is sent, and a download waits for a
 * retransmission. Any thread, after the device has started. Without CAP_NET_ADMIN in the initial
 * user namespace the buffers stay as they are.
 */
void nj_af_packet_grow_sndbuf(void);

/* Writes the descriptors of the driver's sockets on an interface, up to `n_max`: one for each
 * queue, in queue order. Returns their number. Main thread. */
uint32_t nj_af_packet_sockets(unsigned if_index, int *fd, uint32_t n_max);
