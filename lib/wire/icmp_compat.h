/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of ICMP for DPDK 22.11 (Debian 12) to 24.11 (Debian 13). The code uses the newer names;
 * this header defines them where DPDK has only the older ones.
 */
#pragma once

#include <rte_icmp.h>

#ifndef RTE_ICMP_TYPE_ECHO_REPLY
#define RTE_ICMP_TYPE_ECHO_REPLY   RTE_IP_ICMP_ECHO_REPLY
#define RTE_ICMP_TYPE_ECHO_REQUEST RTE_IP_ICMP_ECHO_REQUEST
#endif
