/* SPDX-License-Identifier: BSD-3-Clause */
/* Whom a connection belongs to. tcb->user is a struct party. */
#pragma once

enum party_kind { PARTY_INNOCENT, PARTY_ATTACKER };

struct party {
    enum party_kind kind;
};
