// BaselineStrip: a strip over the panels at the right: the session's baseline and the figures of the run shown against
// it. GUI thread only.
#pragma once

#include <memory>

#include <QWidget>

#include "traces/compare/compare.h"
#include "widgets/numbers.h"
#include "widgets/theme.h"

class QLabel;
class QPushButton;

namespace stagewright {

class PanelSection;

class BaselineStrip : public QWidget {
    Q_OBJECT
public:
    explicit BaselineStrip(QWidget* parent = nullptr);
    // comparison: of the baseline and the run shown; null: the baseline itself is shown, or the answer is pending.
    void setBaseline(const QString& name, std::shared_ptr<const Comparison> comparison, const Units& units,
                     const QString& note);
    QString plainText() const;

signals:
    void clearAsked();

private:
    void fill();
    QLabel* m_title;
    QLabel* m_note;
    QPushButton* m_more;
    PanelSection* m_body;
    std::shared_ptr<const Comparison> m_comparison;
    Units m_units;
    bool m_all = false; // every figure, else the main ones
};

} // namespace stagewright
