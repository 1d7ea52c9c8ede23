// EndSignals: SIGTERM, SIGHUP and SIGINT close the windows without a question and keep the session, so that the next
// start does not take the end for a crash. The program ends with code 130; where it is at work and can't, two seconds
// later all the same.
#pragma once

#include <QObject>

namespace stagewright {

class EndSignals : public QObject {
    Q_OBJECT
public:
    explicit EndSignals(QObject* parent); // one in a program, on its GUI thread
};

} // namespace stagewright
