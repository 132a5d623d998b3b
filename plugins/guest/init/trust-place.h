// Puts the authority where programs and the tools of distributions look for authorities, and takes it out again.
#ifndef TRUST_PLACE_H
#define TRUST_PLACE_H

#include "trust.h"
#include <stdbool.h>

// The certificate alone, in every root that has trust; Debian's and Alpine's update-ca-certificates read it there.
#define TRUST_ANCHOR_FOLDER "/usr/local/share/ca-certificates"
#define TRUST_ANCHOR "berth-egress.crt"
// A link to a bundle with the authorities of the image, or those that it was given, and ours.
#define TRUST_FOLDER "/etc/ssl/certs"
#define TRUST_BUNDLE "berth-ca-bundle.crt"
// What an image without any bundle is given.
#define TRUST_GIVEN "ca-certificates.crt"
// The certificate in folders of hashed certificates.
#define TRUST_HASHED "berth-egress.pem"
// On the instance's own disk, beside its root: which certificate was placed.
#define TRUST_RECORD "berth-trust"

// To be called before a program runs. `root` is the merged root, `disk` the instance's own disk. With no certificate in `trust` everything of
// an earlier start is taken out. What fails is logged, and does not hold up the rest. Whether the root is as wanted: with trust,
// some bundle holds the authority.
bool trust_place(int root, int disk, const struct trust *trust);

#endif
