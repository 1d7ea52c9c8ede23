// CuptiFunctions: the calls of CUPTI that a session makes, as a table, so that tests can replace a driver.
#pragma once

#include <cupti.h>

namespace stagewright::cupti {

struct CuptiFunctions {
    decltype(&cuptiGetVersion) getVersion = cuptiGetVersion;
    decltype(&cuptiGetResultString) getResultString = cuptiGetResultString;
    decltype(&cuptiSubscribe) subscribe = cuptiSubscribe;
    decltype(&cuptiUnsubscribe) unsubscribe = cuptiUnsubscribe;
    decltype(&cuptiActivityRegisterTimestampCallback) registerTimestamp = cuptiActivityRegisterTimestampCallback;
    decltype(&cuptiActivityRegisterCallbacks) registerBuffers = cuptiActivityRegisterCallbacks;
    decltype(&cuptiActivityEnable) enable = cuptiActivityEnable;
    decltype(&cuptiActivityDisable) disable = cuptiActivityDisable;
    decltype(&cuptiActivityEnableRuntimeApi) enableRuntime = cuptiActivityEnableRuntimeApi;
    decltype(&cuptiActivityEnableDriverApi) enableDriver = cuptiActivityEnableDriverApi;
    decltype(&cuptiActivityEnableCudaEventDeviceTimestamps) enableEventTimes =
        cuptiActivityEnableCudaEventDeviceTimestamps;
    decltype(&cuptiActivityFlushAll) flushAll = cuptiActivityFlushAll;
    decltype(&cuptiActivityGetNumDroppedRecords) droppedRecords = cuptiActivityGetNumDroppedRecords;
    decltype(&cuptiActivityPushExternalCorrelationId) push = cuptiActivityPushExternalCorrelationId;
    decltype(&cuptiActivityPopExternalCorrelationId) pop = cuptiActivityPopExternalCorrelationId;
};

} // namespace stagewright::cupti
