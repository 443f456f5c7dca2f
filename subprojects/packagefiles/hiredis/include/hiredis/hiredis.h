/* SPDX-License-Identifier: ISC */
/* Copyright (c) 2026 The Orizuru authors */

#include "../../hiredis.h"
