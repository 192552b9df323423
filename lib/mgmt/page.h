/* SPDX-License-Identifier: BSD-3-Clause */
/* The live page: page/, put into one document by lib/mgmt_page.py. */
#pragma once

#include <stddef.h>

extern const unsigned char nj__mgmt_page[];
extern const size_t nj__mgmt_page_bytes;
/* The value of its field Content-Security-Policy. */
extern const char nj__mgmt_page_policy[];
