/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of telemetry and of net_bonding for DPDK 22.11 (Debian 12) to 24.11 (Debian 13). The code
 * uses the newer names; this header defines them where DPDK has only the older ones.
 */
#pragma once

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
