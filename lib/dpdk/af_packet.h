/* SPDX-License-Identifier: BSD-3-Clause */
/* net_af_packet: what its driver leaves to others. */
#ifndef NJ_DPDK_AF_PACKET_H
#define NJ_DPDK_AF_PACKET_H

#include <stdint.h>

/*
 * Let the driver's sockets have all frames of their rings under way at once, up to 4096 of each. A
 * frame counts until its receiver's CPU takes it up, and beyond the room of a socket, 208 KiB by
 * default, frames stay in the ring until something else is sent: a download would wait for a
 * retransmission. Any thread, when the device has started. Without CAP_NET_ADMIN (of the first user
 * namespace) room stays as it is.
 */
void nj_af_packet_deepen(void);

/* The driver's sockets on an interface, up to `n_max`: one for each of its queues, in their order.
 * Returns how many there are. Main thread. */
uint32_t nj_af_packet_sockets(unsigned if_index, int *fd, uint32_t n_max);

#endif
