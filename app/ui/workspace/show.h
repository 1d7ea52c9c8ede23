// What `stagewright-ui --show NAME` opens: each feature lists the names of its views and how each is opened
// (Feature::showTable).
#pragma once

#include <functional>

#include <QString>

class QDialog;

namespace stagewright {

class Workspace;

struct ShowRequest {
    Workspace& workspace;
    // for functions that open several views
    QString name;
    QString schedule;                                                              // of the library; empty: not named
    std::function<bool(const std::function<bool()>& done, int milliseconds)> wait; // false: it takes longer

    void settle() const; // waits until the window is settled
};

struct ShownDialog {
    QDialog* dialog = nullptr; // null: `fault` says why
    QString fault{};           // what took too long or is missing
};

struct ShowEntry {
    const char* name;
    // place in the list of names; equal ones in the order of features.def
    int at = 1000;
    void (*view)(const ShowRequest& request) = nullptr;          // opens a part of the window, while a run is shown; or
    ShownDialog (*dialog)(const ShowRequest& request) = nullptr; // opens a dialog over the window
};

} // namespace stagewright
