#include "app/launch/hosts/host_install.h"
