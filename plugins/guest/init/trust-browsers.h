// The authority for browsers, which have authorities of their own and ask no system for more.
#ifndef TRUST_BROWSERS_H
#define TRUST_BROWSERS_H

#include "trust-bundles.h"

// A policy of ours in the folders where Chromium and its kind look for policies.
#define TRUST_POLICY "berth-egress.json"

// Without a certificate takes the policies out.
void trust_browsers(struct trust_work *work);

#endif
