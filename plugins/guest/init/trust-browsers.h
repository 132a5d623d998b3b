// The authority for browsers, which have authorities of their own and do not use the system's.
#ifndef TRUST_BROWSERS_H
#define TRUST_BROWSERS_H

#include "trust-bundles.h"

// A policy file of ours in the folders where Chromium and browsers based on it look for policies.
#define TRUST_POLICY "berth-egress.json"

// Without a certificate it removes the policies.
void trust_browsers(struct trust_work *work);

#endif
