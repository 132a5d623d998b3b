// Puts the authority where programs and the tools of distributions look for authorities, and removes it again.
#ifndef TRUST_PLACE_H
#define TRUST_PLACE_H

#include "trust.h"
#include <stdbool.h>

// The certificate alone, in every root that has trust; Debian's and Alpine's update-ca-certificates read it there.
#define TRUST_ANCHOR_FOLDER "/usr/local/share/ca-certificates"
#define TRUST_ANCHOR "berth-egress.crt"
// A link to a bundle with our authority and those of the image, or those that the image was given.
#define TRUST_FOLDER "/etc/ssl/certs"
#define TRUST_BUNDLE "berth-ca-bundle.crt"
// The bundle that an image without any is given.
#define TRUST_GIVEN "ca-certificates.crt"
// The certificate's name in folders of hashed certificates.
#define TRUST_HASHED "berth-egress.pem"
// On the instance's own disk, beside its root: which certificate was placed.
#define TRUST_RECORD "berth-trust"

// Must be called before a program runs. `root` is the merged root, `disk` the instance's own disk. With no certificate in `trust` everything of
// an earlier start is removed. Failures are logged, and the rest is done nevertheless. Returns whether the root is as wanted: with trust,
// some bundle has the authority.
bool trust_place(int root, int disk, const struct trust *trust);

#endif
