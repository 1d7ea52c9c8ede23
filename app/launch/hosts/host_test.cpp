#include "app/launch/hosts/host_test.h"
