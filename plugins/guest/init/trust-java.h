// The authorities for Java, which reads neither bundles nor folders.
#ifndef TRUST_JAVA_H
#define TRUST_JAVA_H

#include "trust-bundles.h"

#define TRUST_JAVA_FOLDER "/etc/ssl"
// A key store with the certificates of the bundle at the stable path.
#define TRUST_JAVA "berth-ca-bundle.jks"

// Must be called when the bundle is in place; without a certificate it removes the store.
void trust_java(struct trust_work *work);

#endif
