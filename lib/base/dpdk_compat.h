/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One source for DPDK 22.11 (Debian 12) to 24.11 (Debian 13). The code uses the newer names; this
 * header defines them where DPDK has only the older ones.
 *
 * The addresses in struct rte_ipv6_hdr are byte arrays in 22.11 and structs of the same 16 bytes
 * since 24.11: `&hdr->src_addr` is their first byte in both.
 */
#ifndef NJ_BASE_DPDK_COMPAT_H
#define NJ_BASE_DPDK_COMPAT_H

#include <rte_icmp.h>
#include <rte_version.h>

#if RTE_VERSION < RTE_VERSION_NUM(23, 3, 0, 0)
#define rte_tel_data_add_dict_uint rte_tel_data_add_dict_u64
#endif

/* The --vdev argument of net_bonding for a member port, and the flag that marks such a port. */
#if RTE_VERSION < RTE_VERSION_NUM(23, 11, 0, 0)
#define NJ_BOND_MEMBER         "slave"
#define NJ_ETH_DEV_BOND_MEMBER RTE_ETH_DEV_BONDED_SLAVE
#else
#define NJ_BOND_MEMBER         "member"
#define NJ_ETH_DEV_BOND_MEMBER RTE_ETH_DEV_BONDING_MEMBER
#endif

#ifndef RTE_ICMP_TYPE_ECHO_REPLY
#define RTE_ICMP_TYPE_ECHO_REPLY   RTE_IP_ICMP_ECHO_REPLY
#define RTE_ICMP_TYPE_ECHO_REQUEST RTE_IP_ICMP_ECHO_REQUEST
#endif

#endif
