/* SPDX-License-Identifier: BSD-3-Clause */
/* Reason phrases of status codes. */
#pragma once

#include "base/str.h"

/* The reason phrase of a final status; empty for one that is not registered. */
struct nj_str nj_status_reason(uint16_t status);
/* One line of text, such as "404 Not Found\n"; empty for one that is not registered. */
struct nj_str nj_status_text(uint16_t status);
