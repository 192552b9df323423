/* SPDX-License-Identifier: BSD-3-Clause */
/* A struct nj_file_ops with one file, "file", whose bytes are in memory, however many. */
#pragma once

#include "http/files/file_ops.h"

#define FILE_JOBS_MAX 256u

struct file {
    struct nj_file_object object;
    uint8_t *bytes;
    uint32_t n_jobs;
    struct nj_file_job *job[FILE_JOBS_MAX];
};

/* Makes a file of `n_bytes`. False: out of memory. */
bool file_init(struct file *f, uint64_t n_bytes);
void file_fini(struct file *f);
/* The functions of the port, which use `f`. */
struct nj_file_ops file_port(struct file *f);
