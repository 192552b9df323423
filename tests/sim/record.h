/* SPDX-License-Identifier: BSD-3-Clause */
/* Records of a run: a line per event, a pcap file, and a hash of every packet. */
#pragma once

#include <stdio.h>

#include "base/types.h"
#include "raw.h"

#define SIM_WHY_BYTES 300u

struct sim_record {
    bool trace;
    FILE *pcap;
    uint64_t hash;
    nj_ns zero; /* start time of the trace */
    bool failed;
    char why[SIM_WHY_BYTES]; /* reason of the failure */
};

/* Start of a seed, at this time. */
void nj_sim_record_begin(struct sim_record *r, uint64_t seed, nj_ns zero);
/* Only the first failure of a seed is kept. */
void nj_sim_record_fail(struct sim_record *r, nj_ns now, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A packet is sent; `from` is 0 or 1, `fate` is "" or the fault of the link. */
void nj_sim_record_frame(struct sim_record *r, nj_ns now, unsigned from, const uint8_t *bytes,
                         uint32_t n_bytes, const char *fate);
/* Another event, as a line of the trace. */
void nj_sim_record_line(const struct sim_record *r, nj_ns now, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
FILE *nj_sim_pcap_open(const char *path);
