/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Passes Ethernet frames to the other process that shares a port during an upgrade, and receives
 * its frames: a pair of connected SOCK_SEQPACKET sockets for each port. A message is a frame, and
 * before it the number of times that it was passed on, and the VLAN tag if the device stripped it.
 * Several lcores may send and receive at once. No call blocks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

/* Creates both ends. The caller closes them. False: errno has the reason. */
bool nj_peer_channel_open(int fd[2]);

/* Is it ARP or neighbour discovery from the device, which both processes need? */
bool nj_peer_channel_is_neighbour_frame(const struct rte_mbuf *m);

/* Sends a copy of the frame; the caller keeps `m`. False: the channel is full or closed, or the
 * frame was passed on NJ_PEER_HOPS_MAX times. */
bool nj_peer_channel_send(int fd, const struct rte_mbuf *m);

/* Receives up to `n` frames into mbufs of `pool`, marked as of nj_is_from_peer_process(). Returns
 * their number. A frame that does not fit an mbuf is dropped. */
uint32_t nj_peer_channel_receive(int fd, struct rte_mempool *pool, struct rte_mbuf **m, uint32_t n);
