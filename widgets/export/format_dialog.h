// FormatDialog: which format a run is written in for other tools, and its options: all that are written without being
// drawn, from their descriptors (traces/format). It asks for a place and writes nothing itself; GUI thread only.
#pragma once

#include <map>

#include <QDialog>

#include "traces/format/format_registry.h"

class QLabel;
class QListWidget;
class QPushButton;
class QVBoxLayout;

namespace stagewright {

class FormatDialog : public QDialog {
    Q_OBJECT
public:
    // orderOnly: of the run no more than its order can be written.
    FormatDialog(bool orderOnly, QWidget* parent = nullptr);

    std::vector<const FormatInfo*> formats() const; // those offered, in the order of formats.def
    const FormatInfo& format() const;               // the one chosen
    void choose(const FormatInfo& format);
    TextPairs options() const; // of the format chosen, those that are set; of a flag the value is empty
    QStringList optionNames() const;
    void setOption(std::string_view name, const QString& value); // a flag is set by any value
    void showFault(const Error& error);                          // the fields stay as they are
    QString faultText() const;
    void setBusy(bool busy); // while it is checked whether the format can express the run

signals:
    void placeAsked(); // every option has a value that can be

private:
    void chosen();
    void proceed();

    QListWidget* m_list;
    QLabel* m_writes;
    QLabel* m_fault;
    QWidget* m_options = nullptr; // replaced with the format
    QVBoxLayout* m_right;
    QPushButton* m_place;
    std::map<std::string_view, QWidget*> m_fields; // by option: a check box or a line
};

} // namespace stagewright
