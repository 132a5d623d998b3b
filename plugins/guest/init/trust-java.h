// The authorities for Java, which reads neither bundles nor folders.
#ifndef TRUST_JAVA_H
#define TRUST_JAVA_H

#include "trust-bundles.h"

#define TRUST_JAVA_FOLDER "/etc/ssl"
// A key store with what the stable path of the bundle leads to.
#define TRUST_JAVA "berth-ca-bundle.jks"

// To be called when the bundle is in its place; without a certificate takes the store out.
void trust_java(struct trust_work *work);

#endif
